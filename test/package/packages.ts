import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { atEndOfFile } from '../helpers/at-end-of-file.ts'

// Packages made from what is committed, in a checkout of their own, and roots to install them in.

const ROOT = path.resolve(import.meta.dirname, '../..')

export function temporary(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-package-'))
  atEndOfFile(() => fs.rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Makes the packages of this machine's architecture from a checkout. Returns the folder that has them. */
export function makePackages(folder: string, from = ROOT, env: NodeJS.ProcessEnv = {}): string {
  execFileSync('git', ['clone', '--quiet', from, folder])
  fs.symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
  run('npm', ['run', '--silent', 'package', '--', 'x64'], { cwd: folder, env })
  return path.join(folder, 'build')
}

export interface Ran {
  code: number | null
  stdout: string
  stderr: string
}

/** Runs a program to its end; throws where it does not end with 0. */
export function run(
  program: string,
  args: readonly string[],
  { cwd, env = {}, input = '' }: { cwd?: string; env?: NodeJS.ProcessEnv; input?: string } = {},
): Ran {
  const ended = spawnSync(program, args, {
    cwd,
    env: { ...process.env, ...env },
    input,
    encoding: 'utf8',
    timeout: 600_000,
    maxBuffer: 2 ** 26,
  })
  const { status: code, stdout, stderr } = ended
  if (code !== 0)
    throw new Error(`${program} ${args.join(' ')}: ${code ?? ended.signal}\n${stdout}\n${stderr}`)
  return { code, stdout, stderr }
}

/** Whether this machine has the programs, and this user may make roots. Says what is missing. */
export function canInstall(what: string, ...programs: string[]): boolean {
  const missing = programs.filter((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0)
  if (process.getuid?.() !== 0) missing.push('root')
  else if (spawnSync('unshare', ['--mount', '--net', 'true']).status !== 0) missing.push('leave to unshare')
  if (missing.length > 0) process.stderr.write(`${what} is not tried: ${missing.join(', ')} missing\n`)
  return missing.length === 0
}

/**
 * Runs a script as root without network, in a root that is gone afterwards: `mounts` makes it in $1. It has /packages.
 */
export function inRoot(mounts: string, packages: string, script: string): string {
  const inside = `set -eu
mount -t tmpfs none "$1"
${mounts}
mkdir -p "$1/packages" "$1/proc" "$1/dev"
mount --bind "$2" "$1/packages"
mount --bind /dev "$1/dev"
mount -t proc none "$1/proc"
ip link set lo up 2> /dev/null || ifconfig lo up
exec chroot "$1" /bin/sh -euc "$3"`
  return run('unshare', [
    '--mount',
    '--net',
    '--pid',
    '--fork',
    'sh',
    '-c',
    inside,
    'sh',
    temporary(),
    packages,
    script,
  ]).stdout
}

/** This machine as it is installed; what is written goes nowhere. */
export const LIKE_THIS = `mkdir "$1/written" "$1/work" "$1/root"
mount -t overlay none -o "lowerdir=/,upperdir=$1/written,workdir=$1/work" "$1/root"
set -- "$1/root" "$2" "$3"
mount -t tmpfs none "$1/tmp"`
