package ledger

// RestoredSequenceJump is by how much restoring a backup raises the sequence of every order and event: those who hear of
// changes have heard of greater numbers than the backup knows, and would take what comes now for something old. So the
// numbers between are not missing where two neighbours differ by one more than a multiple of it.
const RestoredSequenceJump = 1_000_000
