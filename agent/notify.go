package agent

import (
	"encoding/json"
	"fmt"
	"net"
	"time"
)

// EventReady is the event that says that an agent takes messages.
const EventReady = "ready"

// Notify sends one datagram {"agent","generation","event"} to the supervisor's
// notify socket. It waits a second at most; a supervisor that is gone is an error
// that may be ignored, the next one finds out by itself.
func Notify(socket, agent, generation, event string) error {
	b, err := json.Marshal(map[string]string{"agent": agent, "generation": generation, "event": event})
	if err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	c, err := net.DialTimeout("unixgram", socket, time.Second)
	if err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	if _, err := c.Write(b); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	return nil
}
