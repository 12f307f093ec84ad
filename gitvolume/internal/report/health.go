package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Reason is one thing that makes a volume abnormal.
type Reason struct {
	Severity Severity
	// Reason is one CamelCase word, as NodeGetVolumeHealth gives it.
	Reason  string
	Message string
}

// Abnormal is all that is wrong with the volume now, sorted by reason, each reason once;
// nil when nothing is. It is answered from memory.
func (v *Volume) Abnormal() []Reason {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.judge()
}

// judge finds out what is wrong, and has the log tell when that turns.
func (v *Volume) judge() []Reason {
	reasons := v.reasons(time.Now())
	isAbnormal := len(reasons) > 0
	if isAbnormal == v.isAbnormal {
		return reasons
	}
	v.isAbnormal = isAbnormal
	if !isAbnormal {
		v.log().Info("the volume is well again")
		return nil
	}
	var names []string
	for _, reason := range reasons {
		names = append(names, reason.Reason)
	}
	v.log().Warn("the volume is abnormal", "reasons", strings.Join(names, ", "), "message", reasons[0].Message)
	return reasons
}

func (v *Volume) reasons(now time.Time) []Reason {
	var reasons []Reason
	for f, fault := range v.faults {
		if is := natureOf(f); !is.harmless {
			reasons = append(reasons, Reason{Severity: is.severity, Reason: string(f), Message: fault.message})
		}
	}
	if v.figures.overdue(now) {
		reasons = append(reasons, Reason{Reason: string(unpushedTooLong),
			Message: fmt.Sprintf("a commit is not pushed for longer than push.maxLatency, which is %s", v.figures.MaxLatency)})
	}
	slices.SortFunc(reasons, func(a, b Reason) int { return cmp.Compare(a.Reason, b.Reason) })
	return reasons
}
