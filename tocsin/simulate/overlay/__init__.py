"""The content-based overlay on the virtual clock: heads, edges, publishers and subscribers, and faults for them."""
