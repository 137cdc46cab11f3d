import { MirrorError } from '../errors.ts'

const NEEDS_RIGHTS = 'this user needs to write to the file and to its folder'

const ADVICE: Record<string, string> = {
  EACCES: NEEDS_RIGHTS,
  EPERM: NEEDS_RIGHTS,
  EROFS: 'the disk is mounted read-only',
  EISDIR: 'it is a folder; name a file as "database" in the configuration',
  ENOTDIR: 'what should be its folder is a file; look at "database" in the configuration',
  EEXIST: 'what should be its folder is a file; look at "database" in the configuration',
  ENOSPC: 'the disk is full; make room',
}

/** What a failure of the file system means for the mirror. */
export function explainFileError(file: string, error: Error & { code: unknown }): MirrorError {
  const advice = ADVICE[String(error.code)] ?? 'look at the disk, and at "database" in the configuration'
  return new MirrorError(`${file} cannot be used: ${advice} (${error.message})`)
}
