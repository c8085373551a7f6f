// Package fakecli has stand-ins for agent CLIs: they talk to a scripted model, run
// its tool calls, and take mail, approvals and interrupts as the real programs were
// seen to do, so that the tests of everything around them need none installed.
//
// Engine is the loop that all of them share: one conversation, one turn at a time.
// What differs between the programs is when a text that comes in mid-turn reaches
// the model, and over which wire.
package fakecli
