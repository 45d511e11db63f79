package hostile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/size"
)

const (
	long   = 3 << 20 // bytes of an argument
	copies = 6       // how often a call may copy it
)

// Each argument of each call is replaced by one of 3 MiB, in a usual run one in four. A call refuses a name of that size before it makes keys of it, and keeps
// nothing of it in the Lua engine.
func TestNoLongArgumentHurts(t *testing.T) {
	s := newStage(t)
	s.way = "fcall"
	info := func(name string) int64 { return figure(s.rdb.Info(t.Context(), "memory").Val(), name) }
	collect := func() {
		for range 100 { // the engine collects a part of its garbage with each call
			s.rdb.Do(t.Context(), "fcall", s.handle("read"), 1, root)
		}
	}
	s.rdb.ConfigResetStat(t.Context())
	before, calls := info("used_memory_vm_functions:"), 0
	for _, b := range slices.Concat(bases(), facadeBases()) {
		for i := range b.args {
			if !size.Drawn(fmt.Sprint(b.name, ", long argument ", i), 4) {
				continue
			}
			args := slices.Clone(b.args)
			args[i] = strings.Repeat(string('a'+rune(calls%26)), long)
			collect()
			a := s.try(t, b.call, args)
			accepted, fault := a.accepted()
			if fault != "" {
				t.Errorf("%s, argument %d: the reply %s: %s", b.name, i+1, fault, a)
			}
			if a.lua > copies*long || !accepted && len(fmt.Sprint(a.reply)) > 4096 {
				t.Errorf("%s, argument %d: the Lua engine grew by %.1f MiB, and the reply has %d bytes: %s", b.name, i+1, float64(a.lua)/(1<<20), len(fmt.Sprint(a.reply)), a)
			}
			if a.dirty {
				s.restore(t)
			}
			calls++
		}
	}
	collect()
	grown, peak, rss := info("used_memory_vm_functions:")-before, info("used_memory_peak:"), info("used_memory_rss:")
	t.Logf("%d calls: the Lua engine has grown by %d bytes, the peak of the memory is %d, and the process has %d", calls, grown, peak, rss)
	if grown > 24<<20 || peak > 200<<20 || rss > 400<<20 {
		t.Error("want at most 24, 200 and 400 MiB")
	}
}
