/** An answer with status 200 that is not the list that was asked for. */
export class EnvelopeError extends Error {
  override readonly name = 'EnvelopeError'
  /** True for a body that broke off on its way: the same request may well be answered whole. */
  readonly passing: boolean

  constructor(message: string, passing = false) {
    super(message)
    this.passing = passing
  }
}
