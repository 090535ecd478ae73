-- title: Causal attention of four heads, softmax written out
-- relation: Q f32[t=64 h=4 e=16]
-- relation: K f32[t=64 h=4 e=16]
-- relation: V f32[t=64 h=4 e=16]
-- devices: 2
WITH score AS (
  SELECT q.t, k.t AS s, q.h,
         CASE WHEN k.t <= q.t THEN SUM(q.val * k.val) / SQRT(16.0) ELSE CAST('-infinity' AS FLOAT) END AS val
  FROM Q AS q JOIN K AS k ON q.h = k.h AND q.e = k.e
  GROUP BY q.t, k.t, q.h
), top AS (
  SELECT t, h, MAX(val) AS val FROM score GROUP BY t, h
), weight AS (
  SELECT s.t, s.s, s.h, EXP(s.val - m.val) AS val
  FROM score AS s JOIN top AS m ON s.t = m.t AND s.h = m.h
), total AS (
  SELECT t, h, SUM(val) AS val FROM weight GROUP BY t, h
), probability AS (
  SELECT w.t, w.s, w.h, w.val / n.val AS val
  FROM weight AS w JOIN total AS n ON w.t = n.t AND w.h = n.h
)
SELECT p.t, p.h, v.e, SUM(p.val * v.val) AS val
FROM probability AS p JOIN V AS v ON p.s = v.t AND p.h = v.h
GROUP BY p.t, p.h, v.e
