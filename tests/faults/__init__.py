"""A whole hub under everything that goes wrong around it: clients, signals, disks, clocks, time."""
