"""The search for cuts and placements: which digits of the device number cut which labels of every operation.

graph        operations over labels, and the values between them
maps         digit maps: device digits -> labels
rates        what devices and links do in a second
prices       seconds of an operation under a map, of an exchange between two
elimination  exact minimum of a sum of tables, after a dominance test
segments     a graph cut where one value is alive; equal segments are reduced once
search       the plan of least seconds
eindecomp    the published cost and search
"""
