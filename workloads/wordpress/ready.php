<?php
// ready.php ADDRESS PORT: exit status 0 if the server answers with the right front page.
$page = json_decode( file_get_contents( __DIR__ . '/visit.json' ), true )[0];
$url  = "http://$argv[1]:$argv[2]$page[path]";
$http = stream_context_create( array( 'http' => array( 'timeout' => 300, 'ignore_errors' => true ) ) );
$body = @file_get_contents( $url, false, $http );
if ( false === $body ) {
	$why = error_get_last()['message'];
} elseif ( ! preg_match( '#^HTTP/1.1 200 #', $http_response_header[0] ) ) {
	$why = "$url: $http_response_header[0]: must be 200";
} elseif ( ! str_contains( $body, $page['shows'] ) ) {
	$why = "$url: $page[shows] is not in the page";
} else {
	exit( 0 );
}
fwrite( STDERR, "not ready: $why\n" );
exit( 1 );
