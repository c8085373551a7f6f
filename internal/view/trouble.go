package view

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/teamctl/teamctl/team"
)

// LedgerGone reports whether a team cannot be read since its ledger was deleted or moved, or its disk is not
// mounted: what the ledger kept may be lost.
func LedgerGone(err error) bool {
	switch team.ReasonOf(err) {
	case team.ReasonLedgerReplaced, team.ReasonLedgerNotFound, team.ReasonTeamNotFound:
		return true
	}
	return errors.Is(err, fs.ErrNotExist)
}

// TroubleWords says in a few words why a team cannot be read or changed, "" for an error of another kind.
func TroubleWords(err error) string {
	words := map[string]string{
		team.ReasonBusy: "the ledger is locked", "disk_full": "the disk is full", "io": "the disk fails", "readonly": "the ledger cannot be opened",
		"corrupt": "the ledger is damaged or missing", team.ReasonLedgerReplaced: "the ledger was moved or removed", team.ReasonLedgerNotFound: "the ledger is missing",
		team.ReasonTeamNotFound: "the team was not found",
	}[team.ReasonOf(err)]
	switch {
	case words != "":
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		words = "the disk is full"
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.ESTALE), errors.Is(err, syscall.ENOTCONN):
		words = "the disk fails"
	case errors.Is(err, syscall.EROFS):
		words = "the disk cannot be written to"
	case errors.Is(err, fs.ErrPermission):
		words = "the team's home cannot be read"
	case errors.Is(err, fs.ErrNotExist):
		words = "the team's home is missing"
	}
	return words
}
