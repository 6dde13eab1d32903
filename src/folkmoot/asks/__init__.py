"""Asks: whoever may not do a thing asks a person, who is shown exactly what would be done.

`machine` says what an ask is and what can become of it; `service` keeps asks in the store.
"""
