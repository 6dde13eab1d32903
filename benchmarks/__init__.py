"""Speed as ratios against floors and peers, measured in one run."""
