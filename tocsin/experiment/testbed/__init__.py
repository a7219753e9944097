"""The paper's test bed (section 6.1) on real processes: data cluster, coordinator, brokers and moving subscribers."""
