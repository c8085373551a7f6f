package courier

import (
	"path/filepath"

	"github.com/teamctl/teamctl/team"
)

// refused reports whether the start before this one went on with the conversation, and its
// program ended with an error of its own before anything was heard of it: it may not have
// the conversation any more. Gemini CLI loses one when it is killed while it reads it, and
// ends so at every start that asks for it. Where the error was another one, the next start
// tries the conversation again: it stays noted until another is heard of.
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
