package embedded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/curfew-dev/curfew/lua"
)

// serveFacade makes FCALL and FCALL_RO run the functions for programs in other languages.
// miniredis has no Functions, so each function runs as a script, and cannot be replaced.
func (s *Server) serveFacade() error {
	facade, err := lua.LoadFacade(nil)
	if err != nil {
		return err
	}
	srv := s.mini.Server()
	for _, command := range []string{"FCALL", "FCALL_RO"} {
		err := srv.Register(command, func(c *server.Peer, _ string, args []string) {
			if len(args) < 2 {
				c.WriteError(fmt.Sprintf("ERR wrong number of arguments for '%s' command", strings.ToLower(command)))
				return
			}
			script := append([]string{"EVAL", ""}, args[1:]...)
			if why := whyNot(facade, command, args); why != "" {
				script = []string{"EVAL", "return redis.error_reply(ARGV[1])", "0", why} // in a transaction it is the reply to this command
			} else {
				_, script[1], _ = strings.Cut(facade.Script(strings.ToLower(args[0])), "\n") // without the shebang
			}
			srv.Dispatch(c, script)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// whyNot returns the error of Redis for a call that runs no function, or "".
func whyNot(facade *lua.Facade, command string, args []string) string {
	name := strings.ToLower(args[0])
	keys, err := strconv.Atoi(args[1])
	switch {
	case !slices.Contains(facade.Names(), name):
		return "ERR Function not found"
	case err != nil:
		return "ERR Bad number of keys provided"
	case keys < 0:
		return "ERR Number of keys can't be negative"
	case keys > len(args)-2:
		return "ERR Number of keys can't be greater than number of args"
	case command == "FCALL_RO" && !facade.Reads(name):
		return "ERR Can not execute a script with write flag using *_ro command."
	}
	return ""
}
