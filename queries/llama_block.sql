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
---- logical
LOGICAL   26 einsums   1 map   6.9 GFLOP   output e6 f32[t=256 d=1024]

X            := input                                                                                                                                                                                                                                                    f32[t=256 d=1024]           1.0 MiB
e1           := einsum td->t sum(x0 * x0) X                                                                                                                                                                                                                              f32[t=256]                  1.0 KiB  262.1 KFLOP
e2           := einsum td->t sum(f32(1)) X                                                                                                                                                                                                                               f32[t=256]                  1.0 KiB  262.1 KFLOP
square       := einsum t,t->t keep(f32(x0 / x1)) e1, e2                                                                                                                                                                                                                  f32[t=256]                  1.0 KiB     256 FLOP
G_attention  := input                                                                                                                                                                                                                                                    f32[d=1024]                 4.0 KiB
x1           := einsum td,t,d->td keep(x0 * x2 / sqrt(x1 + f32(1e-05))) X, square, G_attention                                                                                                                                                                           f32[t=256 d=1024]           1.0 MiB  524.3 KFLOP
W_q          := input                                                                                                                                                                                                                                                    f32[d=1024 h=16 e=32 c=2]   4.0 MiB
q            := einsum td,dhec->thec x1, W_q                                                                                                                                                                                                                             f32[t=256 h=16 e=32 c=2]    1.0 MiB  536.9 MFLOP
pair         := input                                                                                                                                                                                                                                                    f32[c=2 c2=2]                  16 B
q_turned     := einsum [t h e c2],[c c2]->[t h e c] sum(x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64)))))))) q, pair  f32[t=256 h=16 e=32 c=2]    1.0 MiB    1.0 MFLOP
W_k          := input                                                                                                                                                                                                                                                    f32[d=1024 h=16 e=32 c=2]   4.0 MiB
k            := einsum td,dhec->thec x1, W_k                                                                                                                                                                                                                             f32[t=256 h=16 e=32 c=2]    1.0 MiB  536.9 MFLOP
k_turned     := einsum [t h e c2],[c c2]->[t h e c] sum(x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64)))))))) k, pair  f32[t=256 h=16 e=32 c=2]    1.0 MiB    1.0 MFLOP
e3           := einsum thec,shec->tsh q_turned, k_turned                                                                                                                                                                                                                 f32[t=256 s=256 h=16]       4.0 MiB  134.2 MFLOP
score        := map case(s <= t, x0 / f32(sqrt(64.0)), f32(-inf))  e3                                                                                                                                                                                                    f32[t=256 s=256 h=16]       4.0 MiB
top          := einsum tsh->th max(x0) score                                                                                                                                                                                                                             f32[t=256 h=16]            16.0 KiB    1.0 MFLOP
weight       := einsum tsh,th->tsh keep(exp(x0 - x1)) score, top                                                                                                                                                                                                         f32[t=256 s=256 h=16]       4.0 MiB    1.0 MFLOP
total        := einsum tsh->th weight                                                                                                                                                                                                                                    f32[t=256 h=16]            16.0 KiB    1.0 MFLOP
probability  := einsum tsh,th->tsh keep(x0 / x1) weight, total                                                                                                                                                                                                           f32[t=256 s=256 h=16]       4.0 MiB    1.0 MFLOP
W_v          := input                                                                                                                                                                                                                                                    f32[d=1024 h=16 e=32 c=2]   4.0 MiB
v            := einsum td,dhec->thec x1, W_v                                                                                                                                                                                                                             f32[t=256 h=16 e=32 c=2]    1.0 MiB  536.9 MFLOP
head         := einsum tsh,shec->thec probability, v                                                                                                                                                                                                                     f32[t=256 h=16 e=32 c=2]    1.0 MiB  134.2 MFLOP
W_o          := input                                                                                                                                                                                                                                                    f32[h=16 e=32 c=2 d=1024]   4.0 MiB
attention    := einsum thec,hecd->td head, W_o                                                                                                                                                                                                                           f32[t=256 d=1024]           1.0 MiB  536.9 MFLOP
y            := einsum td,td->td keep(x0 + x1) X, attention                                                                                                                                                                                                              f32[t=256 d=1024]           1.0 MiB  262.1 KFLOP
e4           := einsum td->t sum(x0 * x0) y                                                                                                                                                                                                                              f32[t=256]                  1.0 KiB  262.1 KFLOP
e5           := einsum td->t sum(f32(1)) y                                                                                                                                                                                                                               f32[t=256]                  1.0 KiB  262.1 KFLOP
y_square     := einsum t,t->t keep(f32(x0 / x1)) e4, e5                                                                                                                                                                                                                  f32[t=256]                  1.0 KiB     256 FLOP
G_mlp        := input                                                                                                                                                                                                                                                    f32[d=1024]                 4.0 KiB
y1           := einsum td,t,d->td keep(x0 * x2 / sqrt(x1 + f32(1e-05))) y, y_square, G_mlp                                                                                                                                                                               f32[t=256 d=1024]           1.0 MiB  524.3 KFLOP
W_gate       := input                                                                                                                                                                                                                                                    f32[d=1024 f=2816]         11.0 MiB
gate         := einsum td,df->tf y1, W_gate                                                                                                                                                                                                                              f32[t=256 f=2816]           2.8 MiB    1.5 GFLOP
W_up         := input                                                                                                                                                                                                                                                    f32[d=1024 f=2816]         11.0 MiB
up           := einsum td,df->tf y1, W_up                                                                                                                                                                                                                                f32[t=256 f=2816]           2.8 MiB    1.5 GFLOP
hidden       := einsum tf,tf->tf keep(silu(x0) * x1) gate, up                                                                                                                                                                                                            f32[t=256 f=2816]           2.8 MiB  720.9 KFLOP
W_down       := input                                                                                                                                                                                                                                                    f32[f=2816 d=1024]         11.0 MiB
mlp          := einsum tf,fd->td hidden, W_down                                                                                                                                                                                                                          f32[t=256 d=1024]           1.0 MiB    1.5 GFLOP
e6           := einsum td,td->td keep(x0 + x1) y, mlp                                                                                                                                                                                                                    f32[t=256 d=1024]           1.0 MiB  262.1 KFLOP
---- relational
EXPLAIN   1 device   27 kernel calls   0 exchanges   moves 0 B   peak 18.5 MiB per device

operator                                                                                                                                                                                                                                                                                             keys                 rows  block                      placement  cost
e6: Join on (t d)  combine td,td->td keep(x0 + x1)                                                                                                                                                                                                                                                   t d                     1  f32[t=256 d=1024]          Single     1 call  262.1 KFLOP
├─ y: Join on (t d)  combine td,td->td keep(x0 + x1)                                                                                                                                                                                                                                                 t d                     1  f32[t=256 d=1024]          Single     1 call  262.1 KFLOP
│  ├─ Scan X                                                                                                                                                                                                                                                                                         t d                     1  f32[t=256 d=1024]          Single
│  └─ attention: Aggregate sum by (t d)                                                                                                                                                                                                                                                              t d                     1  f32[t=256 d=1024]          Single
│     └─ Join on (h e c)  contract thec,hecd->td                                                                                                                                                                                                                                                     t d h e c               1                             Single     1 call  536.9 MFLOP
│        ├─ head: Aggregate sum by (t h e c)                                                                                                                                                                                                                                                         t h e c                 1  f32[t=256 h=16 e=32 c=2]   Single
│        │  └─ Join on (h s)  contract tsh,shec->thec                                                                                                                                                                                                                                                t h e c s               1                             Single     1 call  134.2 MFLOP
│        │     ├─ probability: Join on (t h)  combine tsh,th->tsh keep(x0 / x1)                                                                                                                                                                                                                      t s h                   1  f32[t=256 s=256 h=16]      Single     1 call  1.0 MFLOP
│        │     │  ├─ weight: Join on (t h)  combine tsh,th->tsh keep(exp(x0 - x1))                                                                                                                                                                                                                   t s h                   1  f32[t=256 s=256 h=16]      Single     1 call  1.0 MFLOP
│        │     │  │  ├─ score: Map case(s <= t, x0 / f32(sqrt(64.0)), f32(-inf))                                                                                                                                                                                                                     t s h                   1  f32[t=256 s=256 h=16]      Single     1 call
│        │     │  │  │  └─ e3: Aggregate sum by (t s h)                                                                                                                                                                                                                                              t s h                   1  f32[t=256 s=256 h=16]      Single
│        │     │  │  │     └─ Join on (h e c)  contract thec,shec->tsh                                                                                                                                                                                                                               t s h e c               1                             Single     1 call  134.2 MFLOP
│        │     │  │  │        ├─ q_turned: Aggregate sum by (t h e c)                                                                                                                                                                                                                                t h e c                 1  f32[t=256 h=16 e=32 c=2]   Single
│        │     │  │  │        │  └─ Join on (c2)  contract [t h e c2],[c c2]->[t h e c] sum(x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))))))))  t h e c c2              1                             Single     1 call  1.0 MFLOP
│        │     │  │  │        │     ├─ q: Aggregate sum by (t h e c)                                                                                                                                                                                                                                 t h e c                 1  f32[t=256 h=16 e=32 c=2]   Single
│        │     │  │  │        │     │  └─ Join on (d)  contract td,dhec->thec                                                                                                                                                                                                                        t h e c d               1                             Single     1 call  536.9 MFLOP
│        │     │  │  │        │     │     ├─ x1: Join on (t d)  combine td,t,d->td keep(x0 * x2 / sqrt(x1 + f32(1e-05)))                                                                                                                                                                             t d                     1  f32[t=256 d=1024]          Single     1 call  524.3 KFLOP
│        │     │  │  │        │     │     │  ├─ Scan X                                                                                                                                                                                                                                               t d                     1  f32[t=256 d=1024]          Single
│        │     │  │  │        │     │     │  ├─ square: Join on (t)  combine t,t->t keep(f32(x0 / x1))                                                                                                                                                                                               t                       1  f32[t=256]                 Single     1 call  256 FLOP
│        │     │  │  │        │     │     │  │  ├─ e1: Aggregate sum by (t)                                                                                                                                                                                                                          t                       1  f32[t=256]                 Single
│        │     │  │  │        │     │     │  │  │  └─ Join on ()  contract td->t sum(x0 * x0)                                                                                                                                                                                                        t d                     1                             Single     1 call  262.1 KFLOP
│        │     │  │  │        │     │     │  │  │     └─ Scan X                                                                                                                                                                                                                                      t d                     1  f32[t=256 d=1024]          Single
│        │     │  │  │        │     │     │  │  └─ e2: Aggregate sum by (t)                                                                                                                                                                                                                          t                       1  f32[t=256]                 Single
│        │     │  │  │        │     │     │  │     └─ Join on ()  contract td->t sum(f32(1))                                                                                                                                                                                                         t d                     1                             Single     1 call  262.1 KFLOP
│        │     │  │  │        │     │     │  │        └─ Scan X                                                                                                                                                                                                                                      t d                     1  f32[t=256 d=1024]          Single
│        │     │  │  │        │     │     │  └─ Scan G_attention                                                                                                                                                                                                                                     d                       1  f32[d=1024]                Single
│        │     │  │  │        │     │     └─ Scan W_q                                                                                                                                                                                                                                                d h e c                 1  f32[d=1024 h=16 e=32 c=2]  Single
│        │     │  │  │        │     └─ Scan pair                                                                                                                                                                                                                                                     c c2                    1  f32[c=2 c2=2]              Single
│        │     │  │  │        └─ k_turned: Aggregate sum by (t h e c)                                                                                                                                                                                                                                t h e c                 1  f32[t=256 h=16 e=32 c=2]   Single
│        │     │  │  │           └─ Join on (c2)  contract [t h e c2],[c c2]->[t h e c] sum(x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))))))))  t h e c c2              1                             Single     1 call  1.0 MFLOP
│        │     │  │  │              ├─ k: Aggregate sum by (t h e c)                                                                                                                                                                                                                                 t h e c                 1  f32[t=256 h=16 e=32 c=2]   Single
│        │     │  │  │              │  └─ Join on (d)  contract td,dhec->thec                                                                                                                                                                                                                        t h e c d               1                             Single     1 call  536.9 MFLOP
│        │     │  │  │              │     ├─ Join x1                                                                                                                                                                                                                                                 (shared, see above)
│        │     │  │  │              │     └─ Scan W_k                                                                                                                                                                                                                                                d h e c                 1  f32[d=1024 h=16 e=32 c=2]  Single
│        │     │  │  │              └─ Scan pair                                                                                                                                                                                                                                                     c c2                    1  f32[c=2 c2=2]              Single
│        │     │  │  └─ top: Aggregate max by (t h)                                                                                                                                                                                                                                                  t h                     1  f32[t=256 h=16]            Single
│        │     │  │     └─ Join on ()  contract tsh->th max(x0)                                                                                                                                                                                                                                      t h s                   1                             Single     1 call  1.0 MFLOP
│        │     │  │        └─ Map score                                                                                                                                                                                                                                                              (shared, see above)
│        │     │  └─ total: Aggregate sum by (t h)                                                                                                                                                                                                                                                   t h                     1  f32[t=256 h=16]            Single
│        │     │     └─ Join on ()  contract tsh->th                                                                                                                                                                                                                                                 t h s                   1                             Single     1 call  1.0 MFLOP
│        │     │        └─ Join weight                                                                                                                                                                                                                                                               (shared, see above)
│        │     └─ v: Aggregate sum by (t h e c)                                                                                                                                                                                                                                                      t h e c                 1  f32[t=256 h=16 e=32 c=2]   Single
│        │        └─ Join on (d)  contract td,dhec->thec                                                                                                                                                                                                                                             t h e c d               1                             Single     1 call  536.9 MFLOP
│        │           ├─ Join x1                                                                                                                                                                                                                                                                      (shared, see above)
│        │           └─ Scan W_v                                                                                                                                                                                                                                                                     d h e c                 1  f32[d=1024 h=16 e=32 c=2]  Single
│        └─ Scan W_o                                                                                                                                                                                                                                                                                 h e c d                 1  f32[h=16 e=32 c=2 d=1024]  Single
└─ mlp: Aggregate sum by (t d)                                                                                                                                                                                                                                                                       t d                     1  f32[t=256 d=1024]          Single
   └─ Join on (f)  contract tf,fd->td                                                                                                                                                                                                                                                                t d f                   1                             Single     1 call  1.5 GFLOP
      ├─ hidden: Join on (t f)  combine tf,tf->tf keep(silu(x0) * x1)                                                                                                                                                                                                                                t f                     1  f32[t=256 f=2816]          Single     1 call  720.9 KFLOP
      │  ├─ gate: Aggregate sum by (t f)                                                                                                                                                                                                                                                             t f                     1  f32[t=256 f=2816]          Single
      │  │  └─ Join on (d)  contract td,df->tf                                                                                                                                                                                                                                                       t f d                   1                             Single     1 call  1.5 GFLOP
      │  │     ├─ y1: Join on (t d)  combine td,t,d->td keep(x0 * x2 / sqrt(x1 + f32(1e-05)))                                                                                                                                                                                                        t d                     1  f32[t=256 d=1024]          Single     1 call  524.3 KFLOP
      │  │     │  ├─ Join y                                                                                                                                                                                                                                                                          (shared, see above)
      │  │     │  ├─ y_square: Join on (t)  combine t,t->t keep(f32(x0 / x1))                                                                                                                                                                                                                        t                       1  f32[t=256]                 Single     1 call  256 FLOP
      │  │     │  │  ├─ e4: Aggregate sum by (t)                                                                                                                                                                                                                                                     t                       1  f32[t=256]                 Single
      │  │     │  │  │  └─ Join on ()  contract td->t sum(x0 * x0)                                                                                                                                                                                                                                   t d                     1                             Single     1 call  262.1 KFLOP
      │  │     │  │  │     └─ Join y                                                                                                                                                                                                                                                                 (shared, see above)
      │  │     │  │  └─ e5: Aggregate sum by (t)                                                                                                                                                                                                                                                     t                       1  f32[t=256]                 Single
      │  │     │  │     └─ Join on ()  contract td->t sum(f32(1))                                                                                                                                                                                                                                    t d                     1                             Single     1 call  262.1 KFLOP
      │  │     │  │        └─ Join y                                                                                                                                                                                                                                                                 (shared, see above)
      │  │     │  └─ Scan G_mlp                                                                                                                                                                                                                                                                      d                       1  f32[d=1024]                Single
      │  │     └─ Scan W_gate                                                                                                                                                                                                                                                                        d f                     1  f32[d=1024 f=2816]         Single
      │  └─ up: Aggregate sum by (t f)                                                                                                                                                                                                                                                               t f                     1  f32[t=256 f=2816]          Single
      │     └─ Join on (d)  contract td,df->tf                                                                                                                                                                                                                                                       t f d                   1                             Single     1 call  1.5 GFLOP
      │        ├─ Join y1                                                                                                                                                                                                                                                                            (shared, see above)
      │        └─ Scan W_up                                                                                                                                                                                                                                                                          d f                     1  f32[d=1024 f=2816]         Single
      └─ Scan W_down                                                                                                                                                                                                                                                                                 f d                     1  f32[f=2816 d=1024]         Single
---- sql
CREATE TEMPORARY TABLE e1 AS
SELECT
  x0.k0 AS k0,
  CONTRACT_SUM('td->t', 'x0 * x0', LIST(x0.block ORDER BY x0.k1)) AS block
FROM X AS x0
GROUP BY
  x0.k0;

CREATE TEMPORARY TABLE e2 AS
SELECT
  x0.k0 AS k0,
  CONTRACT_SUM('td->t', 'f32(1)', LIST(x0.block ORDER BY x0.k1)) AS block
FROM X AS x0
GROUP BY
  x0.k0;

CREATE TEMPORARY TABLE square AS
SELECT
  x0.k0 AS k0,
  BLOCK_COMBINE('t,t->t', 'f32(x0 / x1)', x0.block, x1.block) AS block
FROM e1 AS x0
JOIN e2 AS x1
  ON x0.k0 = x1.k0;

DROP TABLE e1;

DROP TABLE e2;

CREATE TEMPORARY TABLE x1 AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE('td,t,d->td', 'x0 * x2 / sqrt(x1 + f32(1e-05))', x0.block, x1.block, x2.block) AS block
FROM X AS x0
JOIN square AS x1
  ON x0.k0 = x1.k0
JOIN G_attention AS x2
  ON x0.k1 = x2.k0;

DROP TABLE square;

CREATE TEMPORARY TABLE q AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  x1.k2 AS k2,
  x1.k3 AS k3,
  CONTRACT_SUM('td,dhec->thec', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM x1 AS x0
JOIN W_q AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1,
  x1.k2,
  x1.k3;

CREATE TEMPORARY TABLE q_turned AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  x0.k2 AS k2,
  x1.k0 AS k3,
  CONTRACT_SUM(
    '[t h e c2],[c c2]->[t h e c]',
    'x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64)))))))',
    LIST(x0.block ORDER BY x0.k3),
    LIST(x1.block ORDER BY x0.k3)
  ) AS block
FROM q AS x0
JOIN pair AS x1
  ON x0.k3 = x1.k1
GROUP BY
  x0.k0,
  x0.k1,
  x0.k2,
  x1.k0;

DROP TABLE q;

CREATE TEMPORARY TABLE k AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  x1.k2 AS k2,
  x1.k3 AS k3,
  CONTRACT_SUM('td,dhec->thec', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM x1 AS x0
JOIN W_k AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1,
  x1.k2,
  x1.k3;

CREATE TEMPORARY TABLE k_turned AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  x0.k2 AS k2,
  x1.k0 AS k3,
  CONTRACT_SUM(
    '[t h e c2],[c c2]->[t h e c]',
    'x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64)))))))',
    LIST(x0.block ORDER BY x0.k3),
    LIST(x1.block ORDER BY x0.k3)
  ) AS block
FROM k AS x0
JOIN pair AS x1
  ON x0.k3 = x1.k1
GROUP BY
  x0.k0,
  x0.k1,
  x0.k2,
  x1.k0;

DROP TABLE k;

CREATE TEMPORARY TABLE e3 AS
SELECT
  x0.k0 AS k0,
  x1.k0 AS k1,
  x0.k1 AS k2,
  CONTRACT_SUM(
    'thec,shec->tsh',
    LIST(x0.block ORDER BY x0.k2, x0.k3),
    LIST(x1.block ORDER BY x0.k2, x0.k3)
  ) AS block
FROM q_turned AS x0
JOIN k_turned AS x1
  ON x0.k1 = x1.k1 AND x0.k2 = x1.k2 AND x0.k3 = x1.k3
GROUP BY
  x0.k0,
  x1.k0,
  x0.k1;

DROP TABLE q_turned;

DROP TABLE k_turned;

CREATE TEMPORARY TABLE score AS
SELECT
  x0.k0,
  x0.k1,
  x0.k2,
  BLOCK_MAP('t s h', 'case(s <= t, x0 / f32(sqrt(64.0)), f32(-inf))', x0.block) AS block
FROM e3 AS x0;

DROP TABLE e3;

CREATE TEMPORARY TABLE top AS
SELECT
  x0.k0 AS k0,
  x0.k2 AS k1,
  CONTRACT_MAX('tsh->th', 'x0', LIST(x0.block ORDER BY x0.k1)) AS block
FROM score AS x0
GROUP BY
  x0.k0,
  x0.k2;

CREATE TEMPORARY TABLE weight AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  x0.k2 AS k2,
  BLOCK_COMBINE('tsh,th->tsh', 'exp(x0 - x1)', x0.block, x1.block) AS block
FROM score AS x0
JOIN top AS x1
  ON x0.k0 = x1.k0 AND x0.k2 = x1.k1;

DROP TABLE score;

DROP TABLE top;

CREATE TEMPORARY TABLE total AS
SELECT
  x0.k0 AS k0,
  x0.k2 AS k1,
  CONTRACT_SUM('tsh->th', 'x0', LIST(x0.block ORDER BY x0.k1)) AS block
FROM weight AS x0
GROUP BY
  x0.k0,
  x0.k2;

CREATE TEMPORARY TABLE probability AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  x0.k2 AS k2,
  BLOCK_COMBINE('tsh,th->tsh', 'x0 / x1', x0.block, x1.block) AS block
FROM weight AS x0
JOIN total AS x1
  ON x0.k0 = x1.k0 AND x0.k2 = x1.k1;

DROP TABLE weight;

DROP TABLE total;

CREATE TEMPORARY TABLE v AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  x1.k2 AS k2,
  x1.k3 AS k3,
  CONTRACT_SUM('td,dhec->thec', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM x1 AS x0
JOIN W_v AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1,
  x1.k2,
  x1.k3;

DROP TABLE x1;

CREATE TEMPORARY TABLE head AS
SELECT
  x0.k0 AS k0,
  x0.k2 AS k1,
  x1.k2 AS k2,
  x1.k3 AS k3,
  CONTRACT_SUM('tsh,shec->thec', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM probability AS x0
JOIN v AS x1
  ON x0.k1 = x1.k0 AND x0.k2 = x1.k1
GROUP BY
  x0.k0,
  x0.k2,
  x1.k2,
  x1.k3;

DROP TABLE probability;

DROP TABLE v;

CREATE TEMPORARY TABLE attention AS
SELECT
  x0.k0 AS k0,
  x1.k3 AS k1,
  CONTRACT_SUM(
    'thec,hecd->td',
    LIST(x0.block ORDER BY x0.k1, x0.k2, x0.k3),
    LIST(x1.block ORDER BY x0.k1, x0.k2, x0.k3)
  ) AS block
FROM head AS x0
JOIN W_o AS x1
  ON x0.k1 = x1.k0 AND x0.k2 = x1.k1 AND x0.k3 = x1.k2
GROUP BY
  x0.k0,
  x1.k3;

DROP TABLE head;

CREATE TEMPORARY TABLE y AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE('td,td->td', 'x0 + x1', x0.block, x1.block) AS block
FROM X AS x0
JOIN attention AS x1
  ON x0.k0 = x1.k0 AND x0.k1 = x1.k1;

DROP TABLE attention;

CREATE TEMPORARY TABLE e4 AS
SELECT
  x0.k0 AS k0,
  CONTRACT_SUM('td->t', 'x0 * x0', LIST(x0.block ORDER BY x0.k1)) AS block
FROM y AS x0
GROUP BY
  x0.k0;

CREATE TEMPORARY TABLE e5 AS
SELECT
  x0.k0 AS k0,
  CONTRACT_SUM('td->t', 'f32(1)', LIST(x0.block ORDER BY x0.k1)) AS block
FROM y AS x0
GROUP BY
  x0.k0;

CREATE TEMPORARY TABLE y_square AS
SELECT
  x0.k0 AS k0,
  BLOCK_COMBINE('t,t->t', 'f32(x0 / x1)', x0.block, x1.block) AS block
FROM e4 AS x0
JOIN e5 AS x1
  ON x0.k0 = x1.k0;

DROP TABLE e4;

DROP TABLE e5;

CREATE TEMPORARY TABLE y1 AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE('td,t,d->td', 'x0 * x2 / sqrt(x1 + f32(1e-05))', x0.block, x1.block, x2.block) AS block
FROM y AS x0
JOIN y_square AS x1
  ON x0.k0 = x1.k0
JOIN G_mlp AS x2
  ON x0.k1 = x2.k0;

DROP TABLE y_square;

CREATE TEMPORARY TABLE gate AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('td,df->tf', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM y1 AS x0
JOIN W_gate AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

CREATE TEMPORARY TABLE up AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('td,df->tf', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM y1 AS x0
JOIN W_up AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

DROP TABLE y1;

CREATE TEMPORARY TABLE hidden AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE('tf,tf->tf', 'silu(x0) * x1', x0.block, x1.block) AS block
FROM gate AS x0
JOIN up AS x1
  ON x0.k0 = x1.k0 AND x0.k1 = x1.k1;

DROP TABLE gate;

DROP TABLE up;

CREATE TEMPORARY TABLE mlp AS
SELECT
  x0.k0 AS k0,
  x1.k1 AS k1,
  CONTRACT_SUM('tf,fd->td', LIST(x0.block ORDER BY x0.k1), LIST(x1.block ORDER BY x0.k1)) AS block
FROM hidden AS x0
JOIN W_down AS x1
  ON x0.k1 = x1.k0
GROUP BY
  x0.k0,
  x1.k1;

DROP TABLE hidden;

CREATE TEMPORARY TABLE e6 AS
SELECT
  x0.k0 AS k0,
  x0.k1 AS k1,
  BLOCK_COMBINE('td,td->td', 'x0 + x1', x0.block, x1.block) AS block
FROM y AS x0
JOIN mlp AS x1
  ON x0.k0 = x1.k0 AND x0.k1 = x1.k1;

DROP TABLE y;

DROP TABLE mlp;

SELECT * FROM e6;
---- program
program on host:0   27 kernel calls   0 exchanges   moves 0 bytes   peak 19398656 bytes per device

pipeline 0
  %0  = scan "X"  ->  f32[t=256 d=1024] Single  "X"
        rows 1   calls 0   moved 0   held 1048576
  %1  = join %0 sum td->t x0 * x0 over (t=256 d=1024) work Single  ->  f32[t=256] Single  "e1"
        rows 1   calls 1   moved 0   held 1024
  %2  = join %0 sum td->t f32(1) over (t=256 d=1024) work Single  ->  f32[t=256] Single  "e2"
        rows 1   calls 1   moved 0   held 1024
  %3  = join %1, %2 keep t,t->t f32(x0 / x1) over (t=256) work Single  ->  f32[t=256] Single  "square"
        rows 1   calls 1   moved 0   held 1024
        free %1 %2
  %4  = scan "G_attention"  ->  f32[d=1024] Single  "G_attention"
        rows 1   calls 0   moved 0   held 4096
  %5  = join %0, %3, %4 keep td,t,d->td x0 * x2 / sqrt(x1 + f32(1e-05)) over (t=256 d=1024) work Single  ->  f32[t=256 d=1024] Single  "x1"
        rows 1   calls 1   moved 0   held 1048576
        free %3 %4
  %6  = scan "W_q"  ->  f32[d=1024 h=16 e=32 c=2] Single  "W_q"
        rows 1   calls 0   moved 0   held 4194304
  %7  = join %5, %6 sum td,dhec->thec x0 * x1 over (t=256 h=16 e=32 c=2 d=1024) work Single  ->  f32[t=256 h=16 e=32 c=2] Single  "q"
        rows 1   calls 1   moved 0   held 1048576
        free %6
  %8  = scan "pair"  ->  f32[c=2 c2=2] Single  "pair"
        rows 1   calls 0   moved 0   held 16
  %9  = join %7, %8 sum [t h e c2],[c c2]->[t h e c] x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))))))) over (t=256 h=16 e=32 c=2 c2=2) work Single  ->  f32[t=256 h=16 e=32 c=2] Single  "q_turned"
        rows 1   calls 1   moved 0   held 1048576
        free %7
  %10 = scan "W_k"  ->  f32[d=1024 h=16 e=32 c=2] Single  "W_k"
        rows 1   calls 0   moved 0   held 4194304
  %11 = join %5, %10 sum td,dhec->thec x0 * x1 over (t=256 h=16 e=32 c=2 d=1024) work Single  ->  f32[t=256 h=16 e=32 c=2] Single  "k"
        rows 1   calls 1   moved 0   held 1048576
        free %10
  %12 = join %11, %8 sum [t h e c2],[c c2]->[t h e c] x0 * f32(case(c == c2, cos(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), case(c == 1, sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))), neg(sin(f64(t) * 10000.0 ** (-2.0 * f64(e) / f64(64))))))) over (t=256 h=16 e=32 c=2 c2=2) work Single  ->  f32[t=256 h=16 e=32 c=2] Single  "k_turned"
        rows 1   calls 1   moved 0   held 1048576
        free %8 %11
  %13 = join %9, %12 sum thec,shec->tsh x0 * x1 over (t=256 s=256 h=16 e=32 c=2) work Single  ->  f32[t=256 s=256 h=16] Single  "e3"
        rows 1   calls 1   moved 0   held 4194304
        free %9 %12
  %14 = map %13 case(s <= t, x0 / f32(sqrt(64.0)), f32(-inf))  ->  f32[t=256 s=256 h=16] Single  "score"
        rows 1   calls 1   moved 0   held 4194304
        free %13
  %15 = join %14 max tsh->th x0 over (t=256 h=16 s=256) work Single  ->  f32[t=256 h=16] Single  "top"
        rows 1   calls 1   moved 0   held 16384
  %16 = join %14, %15 keep tsh,th->tsh exp(x0 - x1) over (t=256 s=256 h=16) work Single  ->  f32[t=256 s=256 h=16] Single  "weight"
        rows 1   calls 1   moved 0   held 4194304
        free %14 %15
  %17 = join %16 sum tsh->th x0 over (t=256 h=16 s=256) work Single  ->  f32[t=256 h=16] Single  "total"
        rows 1   calls 1   moved 0   held 16384
  %18 = join %16, %17 keep tsh,th->tsh x0 / x1 over (t=256 s=256 h=16) work Single  ->  f32[t=256 s=256 h=16] Single  "probability"
        rows 1   calls 1   moved 0   held 4194304
        free %16 %17
  %19 = scan "W_v"  ->  f32[d=1024 h=16 e=32 c=2] Single  "W_v"
        rows 1   calls 0   moved 0   held 4194304
  %20 = join %5, %19 sum td,dhec->thec x0 * x1 over (t=256 h=16 e=32 c=2 d=1024) work Single  ->  f32[t=256 h=16 e=32 c=2] Single  "v"
        rows 1   calls 1   moved 0   held 1048576
        free %5 %19
  %21 = join %18, %20 sum tsh,shec->thec x0 * x1 over (t=256 h=16 e=32 c=2 s=256) work Single  ->  f32[t=256 h=16 e=32 c=2] Single  "head"
        rows 1   calls 1   moved 0   held 1048576
        free %18 %20
  %22 = scan "W_o"  ->  f32[h=16 e=32 c=2 d=1024] Single  "W_o"
        rows 1   calls 0   moved 0   held 4194304
  %23 = join %21, %22 sum thec,hecd->td x0 * x1 over (t=256 d=1024 h=16 e=32 c=2) work Single  ->  f32[t=256 d=1024] Single  "attention"
        rows 1   calls 1   moved 0   held 1048576
        free %21 %22
  %24 = join %0, %23 keep td,td->td x0 + x1 over (t=256 d=1024) work Single  ->  f32[t=256 d=1024] Single  "y"
        rows 1   calls 1   moved 0   held 1048576
        free %0 %23
  %25 = join %24 sum td->t x0 * x0 over (t=256 d=1024) work Single  ->  f32[t=256] Single  "e4"
        rows 1   calls 1   moved 0   held 1024
  %26 = join %24 sum td->t f32(1) over (t=256 d=1024) work Single  ->  f32[t=256] Single  "e5"
        rows 1   calls 1   moved 0   held 1024
  %27 = join %25, %26 keep t,t->t f32(x0 / x1) over (t=256) work Single  ->  f32[t=256] Single  "y_square"
        rows 1   calls 1   moved 0   held 1024
        free %25 %26
  %28 = scan "G_mlp"  ->  f32[d=1024] Single  "G_mlp"
        rows 1   calls 0   moved 0   held 4096
  %29 = join %24, %27, %28 keep td,t,d->td x0 * x2 / sqrt(x1 + f32(1e-05)) over (t=256 d=1024) work Single  ->  f32[t=256 d=1024] Single  "y1"
        rows 1   calls 1   moved 0   held 1048576
        free %27 %28
  %30 = scan "W_gate"  ->  f32[d=1024 f=2816] Single  "W_gate"
        rows 1   calls 0   moved 0   held 11534336
  %31 = join %29, %30 sum td,df->tf x0 * x1 over (t=256 f=2816 d=1024) work Single  ->  f32[t=256 f=2816] Single  "gate"
        rows 1   calls 1   moved 0   held 2883584
        free %30
  %32 = scan "W_up"  ->  f32[d=1024 f=2816] Single  "W_up"
        rows 1   calls 0   moved 0   held 11534336
  %33 = join %29, %32 sum td,df->tf x0 * x1 over (t=256 f=2816 d=1024) work Single  ->  f32[t=256 f=2816] Single  "up"
        rows 1   calls 1   moved 0   held 2883584
        free %29 %32
  %34 = join %31, %33 keep tf,tf->tf silu(x0) * x1 over (t=256 f=2816) work Single  ->  f32[t=256 f=2816] Single  "hidden"
        rows 1   calls 1   moved 0   held 2883584
        free %31 %33
  %35 = scan "W_down"  ->  f32[f=2816 d=1024] Single  "W_down"
        rows 1   calls 0   moved 0   held 11534336
  %36 = join %34, %35 sum tf,fd->td x0 * x1 over (t=256 d=1024 f=2816) work Single  ->  f32[t=256 d=1024] Single  "mlp"
        rows 1   calls 1   moved 0   held 1048576
        free %34 %35
  %37 = join %24, %36 keep td,td->td x0 + x1 over (t=256 d=1024) work Single  ->  f32[t=256 d=1024] Single  "e6"
        rows 1   calls 1   moved 0   held 1048576
        free %24 %36

emit %37
