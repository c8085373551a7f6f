package term

import (
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// fullModes is what makes a terminal a full screen: the other screen, no wrapping, pastes in brackets,
// focus, the mouse where it is wanted; and it keeps the title (xterm, "Control Sequences").
func fullModes(mouse bool, title string) []byte {
	var b strings.Builder
	b.WriteString(ansi.SetModeAltScreenSaveCursor + "\x1b[22;2t" + ansi.HideCursor + ansi.ResetModeAutoWrap + ansi.SetModeBracketedPaste + ansi.SetModeFocusEvent)
	if mouse {
		b.WriteString(ansi.SetModeMouseNormal + ansi.SetModeMouseButtonEvent + ansi.SetModeMouseExtSgr)
	}
	if title != "" {
		b.Write(titled(title))
	}
	return []byte(b.String())
}

// plainModes resets that: attributes, mouse, focus and paste, the cursor and wrapping, the other
// screen, and the title.
const plainModes = ansi.ResetStyle + ansi.ResetModeMouseNormal + ansi.ResetModeMouseButtonEvent + ansi.ResetModeMouseExtSgr +
	ansi.ResetModeFocusEvent + ansi.ResetModeBracketedPaste + ansi.ShowCursor + ansi.SetModeAutoWrap + ansi.ResetModeAltScreenSaveCursor + "\x1b[23;2t"

// titled sets the title of the window.
func titled(text string) []byte {
	if !takesStrings() {
		return nil
	}
	return []byte(ansi.SetWindowTitle(text))
}

// copied sets the clipboard.
func copied(text string) []byte {
	if !takesStrings() {
		return nil
	}
	return []byte(ansi.SetSystemClipboard(text))
}

// takesStrings reports whether the terminal knows strings for an operating system command. The console
// of Linux and a VT100 have neither title nor clipboard, and show them.
func takesStrings() bool {
	name := os.Getenv("TERM")
	return name != "linux" && !strings.HasPrefix(name, "vt1") && !strings.HasPrefix(name, "vt2")
}
