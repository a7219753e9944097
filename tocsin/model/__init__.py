"""What crosses a wire: the messages of all protocols and calls, and what both sides decide alike. Needs msgspec."""
