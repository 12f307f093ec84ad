package remote

import "bytes"

// longestVerdicts is more than git prints of the few refs of a push, whatever reasons the
// server gives.
const longestVerdicts = 64 << 10

// verdicts are what git push --porcelain prints of each ref: a flag, the refs and what
// became of them, with tabs between. It is for programs, and no server writes there.
type verdicts struct{ text []byte }

// Write takes standard output of the run.
func (v *verdicts) Write(p []byte) (int, error) {
	v.text = append(v.text, p[:min(len(p), longestVerdicts-len(v.text))]...)
	return len(p), nil
}

// rejects tells whether the remote has answered that it does not take one of the refs.
// That it did not answer, git tells in another word, and what git decides by itself too.
func (v *verdicts) rejects() bool {
	for line := range bytes.Lines(v.text) {
		fields := bytes.SplitN(line, []byte("\t"), 3)
		if len(fields) == 3 && string(fields[0]) == "!" && bytes.HasPrefix(fields[2], []byte("[remote rejected]")) {
			return true
		}
	}
	return false
}
