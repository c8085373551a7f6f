// Package acp speaks the Agent Client Protocol to an agent that it starts: the agent's program
// is a child of teamctl acp, which is the member's process.
//
// Mail arrives by agent.Talk, which reads the mailbox and gives each message to Agent.Prompt as
// a turn of its own: the protocol has no way to add to a turn. The first sign of life of a turn
// is the evidence that the agent has its text. Requests for permission and plans that wait for
// approval go to the team's queue; the answer is the request's own.
package acp
