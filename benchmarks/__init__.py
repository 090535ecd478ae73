"""Speed, as ratios against a peer in the same run: `python -m benchmarks [GROUP] [--json FILE]`.

runner    alternates processes, one per contender and round, and takes the best time of each
dense     dense contractions
"""
