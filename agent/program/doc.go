// Package program is the program of a member that a model leads: it gives package agent
// the sessions, and package llm what each turn works with — the model that the session
// has, its prompt, its tools, and what the team says of its usage.
package program
