"""What is asked, and what has been counted: tasks, studies, and blocks of samples that add."""
