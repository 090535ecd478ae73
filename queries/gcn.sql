-- title: Two graph convolutions on the karate club, self loops included
-- relation: edges i64[src=34 dst=34] from networkx karate
-- relation: X f32[node=34 d=16]
-- relation: W1 f32[d=16 h=8] scale 0.25
-- relation: W2 f32[h=8 y=4] scale 0.35
WITH degree AS (
  SELECT src AS node, CAST(SUM(val) + 1 AS FLOAT) AS val FROM edges GROUP BY src
), adjacency AS (
  SELECT e.src, e.dst, CAST(e.val AS FLOAT) / SQRT(s.val * t.val) AS val
  FROM edges AS e JOIN degree AS s ON e.src = s.node JOIN degree AS t ON e.dst = t.node
), x1 AS (
  SELECT x.node, w.h, SUM(x.val * w.val) AS val
  FROM X AS x JOIN W1 AS w ON x.d = w.d
  GROUP BY x.node, w.h
), n1 AS (
  SELECT a.src AS node, x.h, SUM(a.val * x.val) AS val
  FROM adjacency AS a JOIN x1 AS x ON a.dst = x.node
  GROUP BY a.src, x.h
), hidden AS (
  SELECT n.node, n.h, CASE WHEN n.val + x.val / d.val > 0 THEN n.val + x.val / d.val ELSE 0 END AS val
  FROM n1 AS n JOIN x1 AS x ON n.node = x.node AND n.h = x.h JOIN degree AS d ON n.node = d.node
), x2 AS (
  SELECT x.node, w.y, SUM(x.val * w.val) AS val
  FROM hidden AS x JOIN W2 AS w ON x.h = w.h
  GROUP BY x.node, w.y
), n2 AS (
  SELECT a.src AS node, x.y, SUM(a.val * x.val) AS val
  FROM adjacency AS a JOIN x2 AS x ON a.dst = x.node
  GROUP BY a.src, x.y
)
SELECT n.node, n.y, n.val + x.val / d.val AS val
FROM n2 AS n JOIN x2 AS x ON n.node = x.node AND n.y = x.y JOIN degree AS d ON n.node = d.node
