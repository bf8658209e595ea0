"""A study from request to stored blocks: a step in each file, which takes the last one's result.

request    what is requested, and what the results file already has of it
engine     device, labeler and threads that sample it        (sampler: one task made ready)
placement  the tasks, with p given or found                   (pilot: where they are looked for)
targets    the blocks that every task should have, round by round
measured   the missing blocks, as they are finished
stored     results with these blocks, saved from time to time
executors  what makes them: threads, processes, Dask, a given one  (calls, processes, mpi)
parts_sampler  samples in parts: one rank, slab after slab, or a rank_group
           (saving: checkpoints, and when they are saved)
runner     run_study: all of them in turn
plan       plan_study: time, memory and precision that run_study would take and give
"""
