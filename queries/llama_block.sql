-- title: One LLaMA block: RMS norm, RoPE, causal attention, SwiGLU, residuals
-- relation: X f32[t=256 d=1024]
-- relation: G_attention f32[d=1024]
-- relation: G_mlp f32[d=1024]
-- relation: W_q f32[d=1024 h=16 e=32 c=2] scale 0.03
-- relation: W_k f32[d=1024 h=16 e=32 c=2] scale 0.03
-- relation: W_v f32[d=1024 h=16 e=32 c=2] scale 0.03
-- relation: W_o f32[h=16 e=32 c=2 d=1024] scale 0.03
-- relation: W_gate f32[d=1024 f=2816] scale 0.03
-- relation: W_up f32[d=1024 f=2816] scale 0.03
-- relation: W_down f32[f=2816 d=1024] scale 0.02
-- relation: pair f32[c=2 c2=2] ones
WITH square AS (
  SELECT t, CAST(AVG(val * val) AS FLOAT) AS val FROM X GROUP BY t
), x1 AS (
  SELECT x.t, x.d, x.val * g.val / SQRT(m.val + 0.00001) AS val
  FROM X AS x JOIN square AS m ON x.t = m.t JOIN G_attention AS g ON x.d = g.d
), q AS (
  SELECT x.t, w.h, w.e, w.c, SUM(x.val * w.val) AS val
  FROM x1 AS x JOIN W_q AS w ON x.d = w.d
  GROUP BY x.t, w.h, w.e, w.c
), k AS (
  SELECT x.t, w.h, w.e, w.c, SUM(x.val * w.val) AS val
  FROM x1 AS x JOIN W_k AS w ON x.d = w.d
  GROUP BY x.t, w.h, w.e, w.c
), v AS (
  SELECT x.t, w.h, w.e, w.c, SUM(x.val * w.val) AS val
  FROM x1 AS x JOIN W_v AS w ON x.d = w.d
  GROUP BY x.t, w.h, w.e, w.c
), q_turned AS (
  SELECT q.t, q.h, q.e, r.c,
         SUM(q.val * CASE WHEN r.c = r.c2 THEN COS(q.t * POWER(10000.0, -2.0 * q.e / 64))
                          WHEN r.c = 1 THEN SIN(q.t * POWER(10000.0, -2.0 * q.e / 64))
                          ELSE -SIN(q.t * POWER(10000.0, -2.0 * q.e / 64)) END) AS val
  FROM q JOIN pair AS r ON q.c = r.c2
  GROUP BY q.t, q.h, q.e, r.c
), k_turned AS (
  SELECT k.t, k.h, k.e, r.c,
         SUM(k.val * CASE WHEN r.c = r.c2 THEN COS(k.t * POWER(10000.0, -2.0 * k.e / 64))
                          WHEN r.c = 1 THEN SIN(k.t * POWER(10000.0, -2.0 * k.e / 64))
                          ELSE -SIN(k.t * POWER(10000.0, -2.0 * k.e / 64)) END) AS val
  FROM k JOIN pair AS r ON k.c = r.c2
  GROUP BY k.t, k.h, k.e, r.c
), score AS (
  SELECT q.t, k.t AS s, q.h,
         CASE WHEN k.t <= q.t THEN SUM(q.val * k.val) / SQRT(64.0) ELSE CAST('-infinity' AS FLOAT) END AS val
  FROM q_turned AS q JOIN k_turned AS k ON q.h = k.h AND q.e = k.e AND q.c = k.c
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
), head AS (
  SELECT p.t, p.h, v.e, v.c, SUM(p.val * v.val) AS val
  FROM probability AS p JOIN v ON p.s = v.t AND p.h = v.h
  GROUP BY p.t, p.h, v.e, v.c
), attention AS (
  SELECT a.t, w.d, SUM(a.val * w.val) AS val
  FROM head AS a JOIN W_o AS w ON a.h = w.h AND a.e = w.e AND a.c = w.c
  GROUP BY a.t, w.d
), y AS (
  SELECT x.t, x.d, x.val + a.val AS val
  FROM X AS x JOIN attention AS a ON x.t = a.t AND x.d = a.d
), y_square AS (
  SELECT t, CAST(AVG(val * val) AS FLOAT) AS val FROM y GROUP BY t
), y1 AS (
  SELECT y.t, y.d, y.val * g.val / SQRT(m.val + 0.00001) AS val
  FROM y JOIN y_square AS m ON y.t = m.t JOIN G_mlp AS g ON y.d = g.d
), gate AS (
  SELECT y.t, w.f, SUM(y.val * w.val) AS val
  FROM y1 AS y JOIN W_gate AS w ON y.d = w.d
  GROUP BY y.t, w.f
), up AS (
  SELECT y.t, w.f, SUM(y.val * w.val) AS val
  FROM y1 AS y JOIN W_up AS w ON y.d = w.d
  GROUP BY y.t, w.f
), hidden AS (
  SELECT g.t, g.f, SILU(g.val) * u.val AS val
  FROM gate AS g JOIN up AS u ON g.t = u.t AND g.f = u.f
), mlp AS (
  SELECT h.t, w.d, SUM(h.val * w.val) AS val
  FROM hidden AS h JOIN W_down AS w ON h.f = w.f
  GROUP BY h.t, w.d
)
SELECT y.t, y.d, y.val + m.val AS val
FROM y JOIN mlp AS m ON y.t = m.t AND y.d = m.d
