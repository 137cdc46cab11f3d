import fs from 'node:fs'
import path from 'node:path'
import zlib from 'node:zlib'
import { manPage } from './man.ts'
import { files, run, write } from './tools.ts'

const DEB = path.join(import.meta.dirname, 'deb')

/** What a package of Debian is made of. */
export interface DebParts {
  /** The folder with all that the machine needs. */
  tree: string
  build: string
  /** Runs on this machine, whatever the architecture of the package. */
  program: string
  version: string
  arch: string
}

/** Makes the package, and returns its file in a list; an empty one, with a word, without Debian's own tool. */
export function makeDeb({ tree, build, program, version, arch }: DebParts): string[] {
  if (!hasDpkg()) {
    console.error('dpkg-deb is not installed: no .deb is made')
    return []
  }
  const root = path.join(build, 'deb')
  const at = (place: string) => path.join(root, place)
  const take = (file: string, place: string, mode?: number) =>
    write(at(place), fs.readFileSync(path.join(DEB, file)), mode)
  fs.cpSync(tree, at('usr/lib/admin-mirror'), { recursive: true })
  fs.rmSync(at('usr/lib/admin-mirror/bin/admin-mirror'))
  take('backup.js', 'usr/lib/admin-mirror/backup.js', 0o755)
  take('check.sh', 'usr/lib/admin-mirror/check.sh', 0o755)
  take('command.sh', 'usr/bin/admin-mirror', 0o755)
  take('sysusers.conf', 'usr/lib/sysusers.d/admin-mirror.conf')
  for (const unit of [
    'backup.service',
    'backup-failed.service',
    'backup.timer',
    'check.service',
    'check.timer',
  ])
    take(`admin-mirror-${unit}`, `usr/lib/systemd/system/admin-mirror-${unit}`)
  take('../../admin-mirror.service', 'usr/lib/systemd/system/admin-mirror.service')
  take('admin-mirror.yaml', 'etc/admin-mirror/admin-mirror.yaml', 0o640)
  fs.mkdirSync(at('etc/admin-mirror/tokens'))
  for (const folder of ['etc/admin-mirror', 'etc/admin-mirror/tokens']) fs.chmodSync(at(folder), 0o750)
  addDocuments(at, program)
  for (const script of ['postinst', 'prerm', 'postrm']) take(script, `DEBIAN/${script}`, 0o755)
  write(at('DEBIAN/conffiles'), '/etc/admin-mirror/admin-mirror.yaml\n')
  write(at('DEBIAN/control'), control(root, version, arch))
  const file = path.join(build, `admin-mirror_${version}_${arch}.deb`)
  // SOURCE_DATE_EPOCH is its time. The best of xz would take minutes, for a tenth less.
  run('dpkg-deb', ['--root-owner-group', '-Zxz', '-z2', '--build', root, file], build)
  fs.rmSync(root, { recursive: true })
  return [file]
}

function hasDpkg(): boolean {
  try {
    run('dpkg-deb', ['--version'], '.')
    return true
  } catch {
    return false
  }
}

/** The manual, and the documents where people look for them. */
function addDocuments(at: (place: string) => string, program: string): void {
  const bin = path.join(program, 'dist/bin.js')
  const admin = (...words: string[]) => run(process.execPath, [bin, ...words], program)
  write(at('usr/share/man/man1/admin-mirror.1.gz'), zlib.gzipSync(manPage(admin), { level: 9 }))
  write(at('usr/share/doc/admin-mirror/copyright'), fs.readFileSync(path.join(DEB, 'copyright')))
  for (const name of ['README.md', 'CHANGELOG.md', 'config'])
    fs.symlinkSync(`../../../lib/admin-mirror/${name}`, at(`usr/share/doc/admin-mirror/${name}`))
}

function control(root: string, version: string, arch: string): string {
  const bytes = files(root).reduce((sum, file) => sum + fs.lstatSync(path.join(root, file)).size, 0)
  return `Package: admin-mirror
Version: ${version.replace('-', '~')}
Architecture: ${arch}
Maintainer: admin-mirror <root@localhost>
Installed-Size: ${Math.ceil(bytes / 1024)}
Depends: libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 6)
Recommends: systemd, curl
Suggests: sqlite3
Section: database
Priority: optional
Description: faithful copy of an Administration API's lists in a SQLite file
 Reads the lists of many organizations page by page, within the rate limit, and
 keeps them in a local SQLite file or a PostgreSQL schema. Says how fresh and how
 sure each list is, and goes on where it stopped.
`
}
