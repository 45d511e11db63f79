package lua_test

import (
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/lua"
)

// The code of calls.md. A test of the pages finds it here.
func TestTextsForOtherPrograms(t *testing.T) {
	t.Chdir(t.TempDir())

	library, err := lua.Load(lua.Options{Functions: true})
	if err != nil {
		log.Fatal(err)
	}
	os.WriteFile("curfew.lua", []byte(library.Text()), 0o644)             // for FUNCTION LOAD
	os.WriteFile("enqueue.lua", []byte(library.Source("enqueue")), 0o644) // for EVAL
	fmt.Println(library.Handle("enqueue"))                                // the name of the function

	for name, begin := range map[string]string{"curfew.lua": "#!lua name=curfew_", "enqueue.lua": "#!lua"} {
		text, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(text), begin) {
			t.Errorf("%s begins with %.40q, %v", name, text, err)
		}
	}
}
