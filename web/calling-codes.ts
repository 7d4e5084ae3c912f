/** The calling code of each country. A test compares this table with libphonenumber, which the service uses. */

/** Countries (ISO 3166) in the order of their codes, each one code after the last. A number skips that many, `=` none. */
const table = `
us=ca=ag=ai=as=bb=bm=bs=dm=do=gd=gu=jm=kn=ky=lc=mp=ms=pr=sx=tc=tt=vc=vg=vi5ru=kz12eg6za2grnlbefres1hu2it=varoch1atgb=gg=im=jedkseno
=sjplde1pemxcuarbrclcove1myau=cc=cxidphnzsgth14jpkr1vn1cn3trinpkaflkmm2ir112ssma=ehdz2tn1ly1gmsnmrmlgncibfnetgbjmulrslghngtdcfcmcvst
gqgacgcdaogwioacscsdrwetsodjketzugbimz1zmmgre=ytzwnamwlsbwszkm20sh=taer5awfogl50giptluieisalmtcyfi=axbg10ltlveemdambyadmcsm1uarsmexk
1hrsiba1mk30czsk1li76fkbzgtsvhnnicrpapmht80gp=bl=mfbogyecgfpymqsruycw=bq70tl1nfbnnrpgtosbvufjpwwfcknu1wskinctvpftkfmmh157kp1hkmo1kh
la23bd5tw73mvlbjosyiqkwsayeom1psaeilbhqabtmnnp14tjtmazgekg1uz`

const codes = new Map<string, string>()
let code = 0
for (const [, skipped, country = ''] of table.matchAll(/(=|\d*)(\w\w)/g)) {
  code += skipped === '=' ? 0 : Number(skipped) + 1
  codes.set(country.toUpperCase(), `${code}`)
}

/** Undefined for a country without phone numbers. */
export const callingCodeOf = (country: string) => codes.get(country)

/** The calling code at the beginning of an international number. No code is the beginning of another code. */
export const callingCodeIn = (digits: string) =>
  [...codes.values()].find((known) => digits.startsWith(known))
