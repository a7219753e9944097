"""How planners do as the network grows: highest load, moves, seconds and memory, from 10,000 to 1,000,000 people."""
