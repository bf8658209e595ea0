"""Requests and their results: tasks, studies, and blocks of samples that can be added up."""
