-- title: SwiGLU MLP of one LLaMA block
-- relation: X f32[t=64 d=128]
-- relation: W_gate f32[d=128 f=344] scale 0.09
-- relation: W_up f32[d=128 f=344] scale 0.09
-- relation: W_down f32[f=344 d=128] scale 0.05
-- devices: 4
WITH gate AS (
  SELECT x.t, w.f, SUM(x.val * w.val) AS val
  FROM X AS x JOIN W_gate AS w ON x.d = w.d
  GROUP BY x.t, w.f
), up AS (
  SELECT x.t, w.f, SUM(x.val * w.val) AS val
  FROM X AS x JOIN W_up AS w ON x.d = w.d
  GROUP BY x.t, w.f
), h AS (
  SELECT g.t, g.f, SILU(g.val) * u.val AS val
  FROM gate AS g JOIN up AS u ON g.t = u.t AND g.f = u.f
)
SELECT h.t, w.d, SUM(h.val * w.val) AS val
FROM h JOIN W_down AS w ON h.f = w.f
GROUP BY h.t, w.d
