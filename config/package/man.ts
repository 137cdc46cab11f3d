/** The manual page, made from what `--help` says. `admin` runs a command and returns its output. */
export function manPage(admin: (...words: string[]) => string): string {
  const help = admin('--help')
  const [, list = ''] = /^Commands:\n(.*?)\n\n/ms.exec(help) ?? []
  const commands = [...list.matchAll(/^ {2}(\w+)/gm)]
    .map(([, name = '']) => name)
    .filter((name) => name !== 'help')
  const version = admin('--version').trim()
  const sections = commands.map((name) => `.SS "admin-mirror ${name}"\n${asTyped(admin(name, '--help'))}`)
  return `.TH ADMIN-MIRROR 1 "" "admin-mirror ${version}" "User Commands"
.SH NAME
admin-mirror \\- faithful copy of an Administration API's lists in a SQLite file
.SH SYNOPSIS
.B admin-mirror
.I COMMAND
[options]
.SH DESCRIPTION
${asTyped(help)}
.SH COMMANDS
${sections.join('\n')}
.SH FILES
.I /etc/admin-mirror/admin-mirror.yaml
is the configuration of the service,
.I /var/lib/admin-mirror
has its mirror,
.I /usr/lib/admin-mirror/config
documents and an example of every setting.
`
}

/** Text as it stands. A line may not begin like a command of the page. */
function asTyped(text: string): string {
  const lines = text
    .trimEnd()
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^(?=[.'])/gm, '\\&')
  return `.nf\n${lines}\n.fi`
}
