<?php
// record.php ADDRESS PORT: prints the visit of visit.json as JSON, as a browser makes it. Each page lists the
// scripts, styles and pictures that the visitor does not have yet (`with`), except avatars, which come from another site.
$visit = json_decode( file_get_contents( __DIR__ . '/visit.json' ), true );
$had   = array();
foreach ( $visit as &$step ) {
	$path = $step['path'] ?? $step['comment'];
	$body = @file_get_contents( "http://$argv[1]:$argv[2]$path" );
	if ( false === $body || ! str_contains( $body, $step['shows'] ) ) {
		fwrite( STDERR, "$path: the page must contain $step[shows]\n" );
		exit( 1 );
	}
	$number = preg_match_all( '#"comment_post_ID" value="(\d+)"|\'comment_post_ID\' value=\'(\d+)\'#', $body, $m ) ? max( $m[1][0], $m[2][0] ) : 0;
	if ( isset( $step['comment'] ) && ! ( $step['post'] = (int) $number ) ) {
		fwrite( STDERR, "$path: the page must contain a form for a comment\n" );
		exit( 1 );
	}
	preg_match_all( '#<(?:script|img)\b[^>]*\bsrc=["\']([^"\']+)|<link\b(?=[^>]*\brel=["\'](?:stylesheet|modulepreload))[^>]*\bhref=["\']([^"\']+)#', $body, $m );
	$step['with'] = array();
	foreach ( $m[1] as $i => $src ) {
		$url = html_entity_decode( $src ?: $m[2][$i] );
		$of  = preg_replace( "#^http://$argv[1]:$argv[2](?=/)#", '', $url );
		if ( '/' === $of[0] && '/' !== ( $of[1] ?? '' ) && ! isset( $had[$of] ) ) {
			$had[$of]       = true;
			$step['with'][] = $of;
		}
	}
}
echo json_encode( $visit, JSON_UNESCAPED_SLASHES ), "\n";
