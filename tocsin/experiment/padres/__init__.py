"""The evaluation of the PADRES load balancer (Cheung and Jacobsen, 2006), repeated on the overlay's shipped cores."""
