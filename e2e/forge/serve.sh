# Runs in the pod: makes what a git server has, and serves it. TOKEN is that of the user
# bot, ADDRESS the pod's.
set -e
mkdir -p /run/sshd /srv/git /srv/work
useradd --create-home --shell /usr/bin/git-shell --password '*' git
git config --system user.name Forge
git config --system user.email forge@example.com
git config --system init.defaultBranch main
# Who serves is not who wrote.
git config --system --add safe.directory '*'

# The image's host keys are everybody's.
rm -f /etc/ssh/ssh_host_*
ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
ssh-keygen -q -t ed25519 -N '' -C reader -f /srv/key
mkdir /home/git/.ssh
cp /srv/key.pub /home/git/.ssh/authorized_keys
chown -R git: /home/git/.ssh
cat >/srv/sshd_config <<END
PidFile /run/sshd.pid
AllowUsers git
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
MaxStartups 100
END

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=forge \
	-addext "subjectAltName=IP:$ADDRESS" -keyout /srv/tls.key -out /srv/tls.crt 2>/dev/null
printf 'bot:%s\n' "$TOKEN" >/srv/users
cat >/srv/lighttpd.conf <<'END'
server.modules = ("mod_auth", "mod_authn_file", "mod_alias", "mod_setenv", "mod_cgi", "mod_openssl")
server.port = 8080
server.document-root = "/srv/git"
server.pid-file = "/run/lighttpd.pid"
server.errorlog = "/srv/lighttpd.log"
$SERVER["socket"] == ":8443" {
	ssl.engine = "enable"
	ssl.pemfile = "/srv/tls.crt"
	ssl.privkey = "/srv/tls.key"
}
auth.backend = "plain"
auth.backend.plain.userfile = "/srv/users"
auth.require = ("/git/private" => ("method" => "basic", "realm" => "git", "require" => "valid-user"))
alias.url = ("/git" => "/usr/lib/git-core/git-http-backend")
$HTTP["url"] =~ "^/git/" {
	cgi.assign = ("" => "")
	setenv.set-environment = ("GIT_PROJECT_ROOT" => "/srv/git", "GIT_HTTP_EXPORT_ALL" => "1")
}
END

cat >/srv/start <<'END'
set -e
/usr/sbin/sshd -f /srv/sshd_config -E /srv/sshd.log
lighttpd -f /srv/lighttpd.conf
END
cat >/srv/stop <<'END'
set -e
for server in sshd lighttpd; do
	read -r pid </run/$server.pid
	kill "$pid"
	while [ -e "/proc/$pid/exe" ]; do sleep 0.1; done
done
END
# repository branch file <content: commits it, and prints the commit's id.
cat >/srv/commit <<'END'
set -e
repository=/srv/git/$1.git work=/srv/work/$1
[ -e "$repository" ] || git init --quiet --bare "$repository"
[ -e "$work" ] || git clone --quiet "$repository" "$work" 2>/dev/null
cd "$work"
git fetch --quiet --prune
if git rev-parse --quiet --verify "origin/$2" >/dev/null; then
	git checkout --quiet -B "$2" "origin/$2"
else
	git checkout --quiet -B "$2"
fi
mkdir -p "$(dirname "$3")"
cat >"$3"
git add --all
git commit --quiet --message "Write $3"
git push --quiet origin "HEAD:refs/heads/$2"
git rev-parse HEAD
END
# repository branch into: merges a branch, which counts where the two conflict, and prints
# the commit's id.
cat >/srv/merge <<'END'
set -e
cd "/srv/work/$1"
git fetch --quiet --prune
git checkout --quiet -B "$3" "origin/$3"
git merge --quiet --no-ff --strategy-option theirs --message "Merge $2" "origin/$2"
git push --quiet origin "HEAD:refs/heads/$3"
git rev-parse HEAD
END
# repository words: refuses what is pushed to it, with these words.
cat >/srv/refuse <<'END'
set -e
hook=/srv/git/$1.git/hooks/pre-receive
printf '#!/bin/sh\necho "%s" >&2\nexit 1\n' "$2" >"$hook.new"
chmod 755 "$hook.new"
mv "$hook.new" "$hook"
END

sh /srv/start
trap 'exit 0' TERM
# Written to again and again, the shell also buries what its servers leave behind.
while :; do
	sleep 3600 &
	wait "$!" || true
done
