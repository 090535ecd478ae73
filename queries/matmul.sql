-- title: Matrix product, cut for four devices
-- relation: A f32[i=512 j=384]
-- relation: B f32[j=384 k=256]
-- devices: 4
SELECT a.i, b.k, SUM(a.val * b.val) AS val
FROM A AS a JOIN B AS b ON a.j = b.j
GROUP BY a.i, b.k
