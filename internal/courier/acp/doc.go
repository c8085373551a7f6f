// Package acp speaks the Agent Client Protocol to an agent that it starts: the agent's program is
// a child of teamctl acp, which is the member's process.
//
// Mail arrives through agent.Talk, which reads the mailbox and passes each message to Agent.Prompt
// as a turn of its own: the protocol cannot add to a running turn. The first sign of life of a
// turn is the evidence that the agent has its text. Permission requests and plans that wait for
// approval go to the team's queue; the queue's answer becomes the answer to the agent's request.
package acp
