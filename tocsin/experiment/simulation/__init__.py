"""The paper's simulation (section 6.2): ten brokers, ten thousand subscribers, and the thresholds α and β."""
