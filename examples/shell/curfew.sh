# Calls Curfew's functions with redis-cli 7, for scripts that source this file.
url=${REDIS_URL:-redis://localhost:6379}
root=${CURFEW_ROOT:-"curfew:{0}"}
export LC_ALL=C # texts are bytes
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

cli() { redis-cli -u "$url" --no-auth-warning -e "$@"; }

unique() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

# seconds MS prints 1.500 for 1500.
seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

# call FUNCTION [ARGUMENT...] calls a function. Its last argument is standard input, so that it may hold any bytes. What may
# pass is tried again; a refusal, such as CURFEW LOST, is printed, and call returns 1.
call() {
	function=curfew_$1
	shift
	cat >"$dir/last"
	until cli --no-raw -x FCALL "$function" 1 "$root" "$@" <"$dir/last" >"$dir/reply" 2>"$dir/refused"; do
		echo "$function: $(cat "$dir/refused")" >&2
		if grep -q '^CURFEW ' "$dir/refused"; then return 1; fi
		sleep 0.5
	done
}

# value NAME prints the bytes of a value in the reply. redis-cli --no-raw prints each text on a line of its own, in quotes and
# with \n, \" or \xff for what would not fit there, so no payload looks like a name.
value() {
	awk -v wanted="$1" '
	function hex(digit) { return index("0123456789abcdef", digit) - 1 }
	function print_plain(text,    part, n, i, c) {
		plain["n"] = "\n"; plain["r"] = "\r"; plain["t"] = "\t"; plain["a"] = "\a"; plain["b"] = "\b"
		n = split(text, part, "\\")
		printf "%s", part[1]
		for (i = 2; i <= n; i++) {
			c = substr(part[i], 1, 1)
			if (c == "") printf "\\%s", part[++i]
			else if (c == "x") printf "%c%s", hex(substr(part[i], 2, 1)) * 16 + hex(substr(part[i], 3, 1)), substr(part[i], 4)
			else printf "%s%s", c in plain ? plain[c] : c, substr(part[i], 2)
		}
	}
	sub(/^[^"]*"/, "") && sub(/"$/, "") { word[++words] = $0 }
	END {
		i = 1
		while (i < words && word[i] != wanted) i += word[i] == "claims" ? 1 : 2 # the pairs of the claim follow
		if (i < words) print_plain(word[i + 1])
	}' "$dir/reply"
}
