"""Timings of everything that percolab computes, next to a memory copy and other programs.

timer.py          device events or the host's clock, and the bandwidth of a copy
records.py        the settings of a timing, and the record of a time
stages.py         the stages of a sample, and the bytes that each has to move
peers.py          scipy and cupyx on the same samples
calls.py          kernels one by one
further_times.py  grids of p, thresholds, stored graphs, slabs, trees, sweeps of spins
study_times.py    whole studies, and one sample on several processors
benchmark.py      a whole benchmark, its document and its table
figure.py         time per site against N
"""
