// Common English words, for prompts whose tokens nobody counts: enough of them that four can spell every salt.

export const PLAIN_WORDS: readonly string[] = `
  able about above across act action add after again age ago agree air all allow almost alone along already also
  always among amount animal answer any appear apple area arm around arrive art ask baby back bad ball bank base
  basic bath bear beat become bed before begin behind believe below best better between big bird bit black blood
  blow blue board boat body bone book born both bottom box boy branch bread break bright bring broad brother
  brown build burn busy buy call camp can capital car card care carry case cat catch cause cell center century
  certain chair chance change chart check child choose circle city claim class clean clear climb clock close
  cloth cloud coast coat cold collect color come common company compare complete consider contain control cook
  cool copy corn corner cost cotton could count country course cover cow create crop cross crowd cry current cut
  dance danger dark day dead deal dear death decide deep degree depend describe desert design develop did die
  differ direct discuss distant divide doctor does dog dollar done door double down draw dream dress drink drive
  drop dry during duty each ear early earth ease east eat edge effect egg eight either electric else end enemy
  energy engine enough enter equal even evening event ever every exact example except excite exercise expect
  experience experiment eye face fact fair fall family famous far farm fast fat father favor fear feed feel feet
  fell felt few field fight figure fill final find fine finger finish fire first fish fit five flat floor flow
  flower fly follow food foot force foreign forest form forward found four fraction free fresh friend from front
  fruit full fun game garden gas gather gave general gentle get girl give glad glass gold gone good govern grand
  grass gray great green grew ground group grow guess guide gun hair half hand happen happy hard has hat have
  head hear heart heat heavy held help here high hill his history hit hold hole home hope horse hot hour house
  how huge human hundred hunt hurry ice idea imagine inch include indicate industry insect instant instrument
  interest invent iron island job join joy jump just keep kept key kill kind king knew know lady lake land
  language large last late laugh law lay lead learn least leave led left leg length less let letter level lie
  life lift light like line liquid list listen little live locate log long look lost lot loud love low machine
  made magnet main major make man many map mark market mass master match material matter may mean measure meat
  meet melody men metal method middle might mile milk million mind mine minute miss mix modern molecule moment
  money month moon more morning most mother motion mount mountain mouth move much multiply music must
`
  .trim()
  .split(/\s+/);
