// Package lua contains the Lua calls that change state, and runs them.
//
// A file holds one idea: a function, several functions that are read together, or a table of
// functions that own one kind of state. Clients call the files of call/. The opening comment of a
// file declares the names that it uses of other files, and it sees no other names. A use without
// names means the name of the file itself:
//
//	-- @use store/index
//	-- @use task/finish: finish, cancel_task
//
// Load makes one library of them for FUNCTION LOAD, which contains each file once. Load also makes a
// script for each call, with the files that the call uses. Scripts are for servers without
// Functions, and for servers whose memory is too full to load a library. If a file is missing, uses
// itself through others, or has an unknown flag, Load fails, so that a program finds out when it
// starts.
//
// Empty lines and lines that contain only a comment are not sent. The loader does not parse Lua. So
// it refuses long brackets and strings continued with a backslash, because a line inside them could
// look like a comment. Errors still name the file and line of the source.
//
// [Library.Run] runs a call at most once: if the reply is lost, it returns an error and does not run
// the call again. The caller decides whether to repeat it. The calls are written so that a repeat is
// safe.
package lua
