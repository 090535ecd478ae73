-- title: Adjacency matrix of the karate club times a vector
-- relation: edges i64[src=34 dst=34] from networkx karate
-- relation: x f64[node=34]
SELECT e.src, SUM(e.val * x.val) AS val
FROM edges AS e JOIN x ON e.dst = x.node
GROUP BY e.src
