"""The laboratory: methods that look for circuits, scored on models whose circuit is known.

methods/   methods: functions from a subject and data to a number for each edge
"""
