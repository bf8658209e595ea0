"""Timing of everything that percolab computes, compared with a plain copy and with other programs.

timer.py          device events or the CPU's clock, and the bandwidth of a copy
stages.py         the stages of a sample, and the bytes that each has to move
records.py        one lattice and size, or one graph, timed at several p with several labelers, and
                  by scipy and cupyx
spin_times.py     whole sweeps of spins
calls.py          what the further stages have in common: a setting, and times of whole calls and of
                  their kernels
further_times.py  grids of p, thresholds, kernels one by one, stored graphs, slabs, trees
study_times.py    whole studies, and one sample over several processors
benchmark.py      a whole benchmark, its document and its table
figure.py         time per site against N
"""
