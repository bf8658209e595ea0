"""A study from request to stored blocks: pilot, rounds, plan, scheduler, executors."""
