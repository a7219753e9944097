"""The paper's model: workloads and their loads, the problem that a planner is asked, and the plan it answers with."""
