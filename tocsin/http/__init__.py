"""What every server of ours does alike: listens on a socket, reads bodies within bounds, and answers in one shape."""
