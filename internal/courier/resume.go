package courier

import (
	"path/filepath"

	"github.com/teamctl/teamctl/team"
)

// refused reports whether the previous start resumed the conversation and its program exited with
// an error before anything was heard of it: the program may not have the conversation any more.
// Gemini CLI loses a conversation when it is killed while reading it, and then exits this way at
// every start that asks for it. In case the error had another cause, the conversation stays
// recorded until another one is reported, and the next start tries it again.
func refused(b team.Bundle, c Conversation) bool {
	last, err := ReadLink(b, "")
	if err != nil || !last.Resumed || last.Conversation != c.ID || last.Generation == c.Generation {
		return false
	}
	var exit struct {
		Generation string
		Known      bool
		Code       int // -1 for a signal
	}
	err = ReadJSON(b, filepath.Base(b.Exit()), &exit)
	return err == nil && exit.Generation == last.Generation && exit.Known && exit.Code > 0
}
