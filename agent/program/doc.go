// Package program is the program of a member with a model: it provides the sessions for package
// agent, and for package llm the setup of each turn: the session's model, its prompt, its tools,
// and the team's budgets and limits.
package program
