"""What is requested, and what has been counted: tasks, studies, and blocks of samples that add."""
